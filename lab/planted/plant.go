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

// Planted returns the files that a bug changes, with the bug in them, by their paths from the module's root. Errors:
// *EditError, *AnchorError, errors of reading.
func (b Bug) Planted(module fs.FS) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range b.Edits {
		spans, err := b.spans(module, texts, e.At)
		if err != nil {
			return nil, err
		}
		var place span // the last one that has the text
		count := 0
		for _, s := range spans {
			text, err := textOf(module, texts, s.file)
			if err != nil {
				return nil, fmt.Errorf("planted: %s: %w", b.Name, err)
			}
			if n := strings.Count(text[s.begin:s.end], e.Old); n > 0 {
				place, count = s, count+n
				texts[s.file] = text
			}
		}
		if count != 1 {
			return nil, &EditError{Bug: b.Name, At: e.At, Old: e.Old, Count: count}
		}
		text := texts[place.file]
		changed := strings.Replace(text[place.begin:place.end], e.Old, e.New, 1)
		texts[place.file] = text[:place.begin] + changed + text[place.end:]
	}
	return texts, nil
}

// writeOverlay writes the changed files into the folder, and the file that names them to the go command.
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
