package library

import "path/filepath"

// Candidates returns what Open may be tried with for the files of a library that a toolkit of CUDA, a wheel of Python or an
// environment of conda brings, best first: first the names alone, which the loader looks for, then the paths of files that there
// are, the first name first. env and glob are os.Getenv and filepath.Glob.
func Candidates(files []string, env func(string) string, glob func(string) ([]string, error)) []string {
	var folders []string
	for _, home := range []string{env("CUDA_HOME"), env("CUDA_PATH"), "/usr/local/cuda", "/usr/local/cuda-*"} {
		if home != "" {
			folders = append(folders, filepath.Join(home, "lib64"), filepath.Join(home, "lib"))
		}
	}
	if prefix := env("CONDA_PREFIX"); prefix != "" {
		folders = append(folders, filepath.Join(prefix, "lib"))
	}
	for _, root := range []string{env("VIRTUAL_ENV"), env("CONDA_PREFIX"), filepath.Join(env("HOME"), ".local"), "/usr/local", "/usr"} {
		if root == "" {
			continue
		}
		for _, packages := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages", "lib/python3/dist-packages"} {
			folders = append(folders, filepath.Join(root, packages, "nvidia/c*/lib"))
		}
	}
	all := append([]string(nil), files...)
	for _, file := range files {
		for _, folder := range folders {
			found, err := glob(filepath.Join(folder, file))
			if err == nil { // else the folder's name is not a pattern
				all = append(all, found...)
			}
		}
	}
	return all
}
