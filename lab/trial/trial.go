package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Overlay writes changed files, which their absolute paths name, into a folder. It returns the file that names them to the go
// command.
func Overlay(folder string, texts map[string]string) (string, error) {
	replace := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(texts)) { // the same files each time; none is source to those who look through the tree
		changed := filepath.Join(folder, strconv.Itoa(len(replace))+".go.txt")
		if err := os.WriteFile(changed, []byte(texts[path]), 0o600); err != nil {
			return "", err
		}
		replace[path] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// Each calls a function for 0 to count-1, several at a time.
func Each(atATime, count int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, atATime) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	workers.Wait()
}

// Changed returns the files that differ from a commit, and those that git does not know, by their paths from the folder root.
func Changed(ctx context.Context, root, commit string) (files []string, err error) {
	for _, args := range [][]string{{"diff", "--relative", "--name-only", commit}, {"ls-files", "--others", "--exclude-standard"}} {
		said, err := command(ctx, root, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
		if err != nil {
			return nil, err
		}
		files = append(files, strings.Fields(string(said))...)
	}
	return files, nil
}

// Go runs the go command and returns its output.
func Go(ctx context.Context, folder string, args ...string) ([]byte, error) {
	return command(ctx, folder, "go", args...)
}

func command(ctx context.Context, folder, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	var complained bytes.Buffer
	cmd.Stderr = &complained
	said, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{name}, args...), " "), err, complained.String())
	}
	return said, nil
}

// FunctionName returns the name of a function as stack traces have it, without the package and type parameters.
func FunctionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	of, _, _ := strings.Cut(types.ExprString(f.Recv.List[0].Type), "[")
	if strings.HasPrefix(of, "*") {
		of = "(" + of + ")"
	}
	return of + "." + f.Name.Name
}
