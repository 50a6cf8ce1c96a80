package planted

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Planted are the files that a bug changes, as they are with it, by their paths from the module's root. Errors: *EditError,
// those of reading.
func (b Bug) Planted(module fs.FS) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range b.Edits {
		if _, read := texts[e.File]; !read {
			text, err := fs.ReadFile(module, e.File)
			if err != nil {
				return nil, fmt.Errorf("planted: %s: %w", b.Name, err)
			}
			texts[e.File] = string(text)
		}
		if n := strings.Count(texts[e.File], e.Old); n != 1 {
			return nil, &EditError{Bug: b.Name, File: e.File, Old: e.Old, Count: n}
		}
		texts[e.File] = strings.Replace(texts[e.File], e.Old, e.New, 1)
	}
	return texts, nil
}

// writeOverlay puts the changed files into the folder, and the file that tells the go command of them.
func (b Bug) writeOverlay(root, dir string) (overlay string, err error) {
	texts, err := b.Planted(os.DirFS(root))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, text := range texts {
		changed := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("planted: %w", err)
		}
		replace[filepath.Join(root, filepath.FromSlash(path))] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("planted: %w", err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", fmt.Errorf("planted: %w", err)
	}
	return overlay, nil
}
