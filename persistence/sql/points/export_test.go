package points

import (
	"context"
	"fmt"
)

// SetVersion makes the file one of another version.
func (f *File) SetVersion(ctx context.Context, version int) error {
	p, err := f.open(ctx)
	if err != nil {
		return err
	}
	_, err = p.write.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
	return err
}
