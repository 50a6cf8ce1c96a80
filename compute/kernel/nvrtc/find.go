package nvrtc

import (
	"os"
	"path/filepath"
)

// names are those that a loader may find.
func names() []string {
	return []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"}
}

// places are patterns of folders in which toolkits, wheels and conda have the library.
func places() (all []string) {
	for _, variable := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if home := os.Getenv(variable); home != "" {
			all = append(all, filepath.Join(home, "lib64"), filepath.Join(home, "lib"))
		}
	}
	if conda := os.Getenv("CONDA_PREFIX"); conda != "" {
		all = append(all, filepath.Join(conda, "lib"))
	}
	all = append(all, "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
	roots := []string{os.Getenv("VIRTUAL_ENV"), os.Getenv("CONDA_PREFIX"), "/usr", "/usr/local"}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, ".local"))
	}
	for _, root := range roots {
		if root == "" {
			continue
		}
		for _, packages := range []string{"site-packages", "dist-packages"} {
			for _, wheel := range []string{"cu13", "cuda_nvrtc"} {
				all = append(all, filepath.Join(root, "lib", "python3*", packages, "nvidia", wheel, "lib"))
			}
		}
	}
	return all
}

// candidates are paths of libraries, the newest version of each folder first.
func candidates() (all []string) {
	for _, place := range places() {
		for _, name := range names() {
			found, err := filepath.Glob(filepath.Join(place, name))
			if err == nil { // the patterns are well-formed unless a variable is not
				all = append(all, found...)
			}
		}
	}
	return all
}
