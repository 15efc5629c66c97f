package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// completeErase carries out the plan that lies next to the log, if there is one, and removes what was prepared without
// a plan. Each step can be repeated: the lines that account for it are written once, before the first file is replaced,
// and a file is replaced by a rename.
func (l *Log) completeErase() error {
	if !l.durable {
		return nil
	}
	data, err := os.ReadFile(l.path + journalSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return l.dropPrepared()
	}
	if err != nil {
		return fmt.Errorf("continue to pseudonymise: %w", err)
	}
	var p erasePlan
	if err := json.Unmarshal(data, &p); err != nil || p.Receipt == "" {
		return fmt.Errorf(
			"%s is no plan to pseudonymise lines; remove it if it is not from this service", l.path+journalSuffix,
		)
	}
	return l.carryOut(&p, false)
}

// carryOut carries out a plan. fresh: nobody has begun with it.
func (l *Log) carryOut(p *erasePlan, fresh bool) error {
	if err := l.accountErasure(p, fresh); err != nil {
		return fmt.Errorf("continue to pseudonymise: %w", err)
	}
	dir := filepath.Dir(l.path)
	for _, part := range p.Parts {
		name := filepath.Join(dir, filepath.Base(part.File))
		if err := os.Rename(preparedName(l.path, part.Part), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("continue to pseudonymise: %w", err)
		}
	}
	if err := errors.Join(syncDir(dir), os.Remove(l.path+journalSuffix), syncDir(dir)); err != nil {
		return fmt.Errorf("continue to pseudonymise: %w", err)
	}
	return nil
}

// accountErasure writes the lines that account for a plan, unless they are there, and makes them durable.
func (l *Log) accountErasure(p *erasePlan, fresh bool) error {
	missing := map[int]erasePart{}
	for _, part := range p.Parts {
		missing[part.Part] = part
	}
	files, err := Files(l.path)
	if err != nil {
		return err
	}
	for _, name := range files {
		if fresh {
			break
		}
		if err := l.findAccounted(name, p.Receipt, missing); err != nil {
			return err
		}
	}
	var list []*record
	for _, part := range p.Parts {
		if _, ok := missing[part.Part]; ok {
			list = append(list, &record{
				Timestamp: l.timestampNow(),
				Kind:      kindErased,
				Reason:    fmt.Sprintf("%d lines were pseudonymised", part.Lines),
				ledger:    ledger{Lines: part.Lines, Receipt: p.Receipt, Part: part.Part, Digest: part.Digest},
			})
		}
	}
	if len(list) > 0 {
		if _, err := l.writeRecords(list); err != nil {
			return err
		}
	}
	return errors.Join(l.file.Sync(), l.storeMark(l.currentMark()))
}

// findAccounted removes from missing the parts of a receipt for which a file has the line.
func (l *Log) findAccounted(name, receipt string, missing map[int]erasePart) error {
	kind := []byte(`"kind":"` + kindErased + `"`)
	data, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }() // read only
	return scanLines(data, func(line []byte) {
		if !bytes.Contains(line, kind) {
			return
		}
		var r record
		body, hash, ok := unsealLine(bytes.TrimSuffix(line, []byte("\n")))
		if ok && hexDigest(body) == hash && json.Unmarshal(body, &r) == nil &&
			r.Kind == kindErased && r.Receipt == receipt {
			delete(missing, r.Part)
		}
	})
}

// dropPrepared removes what was prepared before a plan was stored.
func (l *Log) dropPrepared() error {
	entries, err := os.ReadDir(filepath.Dir(l.path))
	if err != nil {
		return err
	}
	stem := filepath.Base(l.path) + "."
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stem) && strings.HasSuffix(e.Name(), erasingSuffix) {
			errs = append(errs, os.Remove(filepath.Join(filepath.Dir(l.path), e.Name())))
		}
	}
	return errors.Join(errs...)
}
