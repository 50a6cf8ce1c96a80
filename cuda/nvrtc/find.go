package nvrtc

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/go-vram/vram/cudadrv/dynamic/library"
)

// Variable is the environment variable that names the library, or forbids it.
const Variable = "VRAM_NVRTC"

// ErrForbidden is within the *NotFoundError where VRAM_NVRTC is "off".
var ErrForbidden = errors.New("nvrtc: VRAM_NVRTC is off")

// files are the names of the library, the newest first.
func files() []string {
	return []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"}
}

// Find opens the first library that there is: of the paths of a caller or, without any, the one that VRAM_NVRTC names, else
// where loaders, toolkits, wheels and conda have it. It takes up to some hundred milliseconds. Errors: *NotFoundError.
func Find(paths ...string) (*Library, error) {
	tried := paths
	if len(paths) == 0 {
		switch named := os.Getenv(Variable); named {
		case "off":
			return nil, &NotFoundError{Err: ErrForbidden}
		case "":
			tried = library.Candidates(files(), os.Getenv, filepath.Glob)
		default:
			tried = []string{named}
		}
	}
	var failed []error
	for _, path := range tried {
		l, err := open(path)
		if err == nil {
			return l, nil
		}
		failed = append(failed, err)
	}
	return nil, &NotFoundError{tried, errors.Join(failed...)}
}
