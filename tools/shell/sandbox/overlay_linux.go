package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// layerDirs returns the directories of the layer above a root of spec.Write.
func (o *Overlay) layerDirs(spec Spec, root string) (upper, work string) {
	if root == spec.Dir {
		return o.Upper, o.Work
	}
	dir := filepath.Join(o.Beside, strconv.Itoa(slices.Index(spec.Write, root)))
	return filepath.Join(dir, "upper"), filepath.Join(dir, "work")
}

// makeLayers makes the directories of the layers beside that of spec.Dir. A root that does not exist needs none.
func (o *Overlay) makeLayers(spec Spec) error {
	for _, root := range spec.Write {
		info, err := os.Stat(root)
		if root == spec.Dir || err != nil {
			continue
		}
		upper, work := o.layerDirs(spec, root)
		for _, dir := range []string{upper, work} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		// The root of an overlay looks like its upper layer.
		if err := errors.Join(
			os.Chmod(upper, info.Mode().Perm()), os.Chtimes(upper, time.Time{}, info.ModTime()),
		); err != nil {
			return err
		}
	}
	return nil
}

// writtenRoot returns a root beside spec.Dir that a command has changed; "" = there is none.
func (o *Overlay) writtenRoot(spec Spec) string {
	for _, root := range spec.Write {
		if root == spec.Dir {
			continue
		}
		upper, _ := o.layerDirs(spec, root)
		now, err := os.Stat(upper)
		if os.IsNotExist(err) {
			continue
		}
		before, err2 := os.Stat(root)
		entries, err3 := os.ReadDir(upper)
		switch {
		case len(entries) > 0:
			return filepath.Join(root, entries[0].Name())
		case errors.Join(err, err2, err3) != nil,
			now.Mode().Perm() != before.Mode().Perm(), !now.ModTime().Equal(before.ModTime()):
			return root
		}
	}
	return ""
}

// overlayMounts replaces the binds of what may be written by overlays. Attributes are in the namespace
// of users, which works in a user namespace; nothing is written through to the disk, because what
// remains is read once, after the command.
func overlayMounts(mounts []supervisor.Mount, spec Spec) []supervisor.Mount {
	escape := strings.NewReplacer(`\`, `\\`, ",", `\,`, ":", `\:`).Replace
	layer := func(root string) supervisor.Mount {
		upper, work := spec.Overlay.layerDirs(spec, root)
		return supervisor.Mount{
			Kind: supervisor.MountLayer, Path: root,
			Source: "lowerdir=" + escape(root) + ",upperdir=" + escape(upper) + ",workdir=" + escape(work) +
				",userxattr,index=off,xino=off,volatile",
		}
	}
	for i, m := range mounts {
		switch {
		case m.Kind != supervisor.MountBind || !m.Write || m.Path == spec.Dir || !slices.Contains(spec.Write, m.Path):
		case m.Dir:
			mounts[i] = layer(m.Path)
		default: // a file cannot be on a layer
			mounts[i].Write = false
		}
	}
	return append(mounts, layer(spec.Dir)) // it may be inside another root
}
