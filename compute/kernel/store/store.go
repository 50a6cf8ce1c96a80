package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

const (
	// Variable is the environment variable that names the folder.
	Variable = "VRAM_KERNEL_STORE"
	// Off is the value of Variable that keeps nothing.
	Off = "off"
	// DefaultLimitBytes is room for some ten thousand kernels: one has 5 to 30 KiB with its text.
	DefaultLimitBytes = 256 << 20
	// touchAfter is the age of a time of use that Get renews: eviction needs no more precision, and most hits write nothing.
	touchAfter = 24 * time.Hour
)

// Config says where a store is and how large it becomes. The zero value is a store of the user's.
type Config struct {
	Folder     string // "": vram/kernels in os.UserCacheDir; the environment variable VRAM_KERNEL_STORE is preferred to both
	LimitBytes int64  // of all entries; 0 or less: DefaultLimitBytes
	Log        Logger // or nil
}

// Logger gets the first reason for which a store keeps no image. *slog.Logger is a logger. Its method is called by Put.
type Logger interface {
	Warn(msg string, args ...any)
}

// Store is a folder of compiled kernels.
type Store struct {
	path     string // "": none
	log      Logger // or nil
	files    files
	counts   counts
	bound    bound
	disabled atomic.Pointer[string] // the reason
	logged   atomic.Bool            // the first loss
	trusted  atomic.Bool            // the folder is there, and no other user may write to it
}

// Open is the store of a folder. It touches no file: a folder that cannot be used is found by the first Put.
func Open(with Config) *Store { return openOn(with, disk{}) }

func openOn(with Config, on files) *Store {
	s := &Store{path: with.Folder, log: with.Log, files: on, bound: bound{limitBytes: with.LimitBytes}}
	if s.bound.limitBytes <= 0 {
		s.bound.limitBytes = DefaultLimitBytes
	}
	switch value := os.Getenv(Variable); {
	case value == Off:
		s.path = ""
		s.disable(Variable + " is " + Off)
		s.logged.Store(true) // it is wanted
	case value != "":
		s.path = value
	case s.path == "":
		home, err := os.UserCacheDir()
		if err != nil {
			s.disable(err.Error())
			break
		}
		s.path = filepath.Join(home, "vram", "kernels")
	}
	return s
}

// Folder is where the entries are, "" for a store that keeps nothing.
func (s *Store) Folder() string {
	if s == nil {
		return ""
	}
	return s.path
}

// Get is the image that Put was given for a key, in this process or another one.
func (s *Store) Get(k Key) (image []byte, ok bool) {
	if s == nil {
		return nil, false
	}
	b := takeBuffers()
	defer buffersPool.Put(b)
	b.header = k.appendHeader(b.header[:0])
	image, ok = s.read(b)
	if !ok {
		s.counts.misses.Add(1)
		return nil, false
	}
	s.counts.hits.Add(1)
	s.counts.readBytes.Add(int64(len(image)))
	return image, true
}

// buffers are the memory of a Get: a process that starts has one for each kernel.
type buffers struct{ header, file []byte }

var buffersPool sync.Pool //nolint:gochecknoglobals // scratch memory, made on first use

func takeBuffers() *buffers {
	if b, ok := buffersPool.Get().(*buffers); ok {
		return b
	}
	return &buffers{}
}

// read is a copy of the image of a header's entry.
func (s *Store) read(b *buffers) ([]byte, bool) {
	if s.path == "" {
		return nil, false
	}
	if err := s.trust(); err != nil {
		return nil, false
	}
	path := filepath.Join(s.path, name(b.header))
	data, changed, err := s.files.read(b.file[:0], path, s.bound.limitBytes)
	b.file = data
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case errors.Is(err, errIrregular): // damaged, and without data
	case err != nil:
		s.counts.failed.Add(1)
		return nil, false
	}
	image, v := decode(data, b.header)
	if v == damaged {
		s.counts.damaged.Add(1)
		_ = s.remove(path) // counted
	}
	if v != whole { // the next Put replaces a foreign one
		return nil, false
	}
	if time.Since(changed) > touchAfter && s.files.touch(path) != nil {
		s.counts.failed.Add(1) // as in a folder that can only be read
	}
	return bytes.Clone(image), true
}

// trust refuses a folder that another user may write to, or that is not there: then there are no entries. It looks until the folder
// was found good, once.
func (s *Store) trust() error {
	if s.trusted.Load() {
		return nil
	}
	err := s.files.trust(s.path)
	switch {
	case err == nil:
		s.trusted.Store(true)
	case !errors.Is(err, fs.ErrNotExist):
		s.disable(err.Error())
		s.warn(err)
	}
	return err
}

// remove removes a file. An error but fs.ErrNotExist is counted.
func (s *Store) remove(path string) error {
	err := s.files.remove(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.counts.failed.Add(1)
	}
	return err
}

// Put keeps an image for a key. An image that is there is replaced. It may fail: Stats tells.
func (s *Store) Put(k Key, image []byte) {
	if s == nil {
		return
	}
	if reason := s.disabled.Load(); reason != nil {
		s.lose(errors.New(*reason))
		return
	}
	header := k.header()
	data := encode(header, image)
	if int64(len(data)) > s.bound.limitBytes {
		s.lose(fmt.Errorf("an entry of %d bytes exceeds the bound of %d", len(data), s.bound.limitBytes))
		return
	}
	file := name(header)
	if err := s.write(file, data); err != nil {
		s.counts.failed.Add(1)
		s.lose(err)
		return
	}
	s.counts.written.Add(1)
	s.counts.writtenBytes.Add(int64(len(data)))
	s.keepBound(file, int64(len(data)))
}

// write makes a file under another name, and renames it.
func (s *Store) write(name string, data []byte) error {
	if err := s.files.folder(s.path); err != nil {
		s.disable(err.Error())
		return err
	}
	if err := s.trust(); err != nil {
		return err
	}
	f, err := s.files.create(s.path)
	if err != nil {
		s.disable(err.Error())
		return err
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = s.files.rename(f.Name(), filepath.Join(s.path, name))
	}
	if err != nil {
		_ = s.remove(f.Name()) // counted
	}
	return err
}

// disable has Put keep nothing from here on.
func (s *Store) disable(reason string) { s.disabled.CompareAndSwap(nil, &reason) }

// lose counts an image that is not kept, and logs the first one.
func (s *Store) lose(why error) {
	s.counts.lost.Add(1)
	s.warn(why)
}

func (s *Store) warn(why error) {
	if s.log != nil && !s.logged.Swap(true) {
		s.log.Warn("a compiled kernel was not stored", "folder", s.path, "reason", why, "disabled", s.disabled.Load() != nil)
	}
}

// View is a store for the kernels of one device: a kernel.Store.
type View struct {
	of  *Store
	key Key
}

// emitter names package kernel in keys. It changes with each change of how that package makes an image of a text.
const emitter = "kernel 1"

// On is the store for package kernel on a kind of device, with its driver: for kernel.WithStore.
func (s *Store) On(device cudadrv.Info) *View {
	return &View{s, Key{
		Emitter: emitter, Compute: device.Compute,
		Driver: fmt.Sprintf("%s %d.%d", device.Driver, device.DriverVersion/1000, device.DriverVersion%1000/10),
	}}
}

// Get is Store.Get of a text.
func (v *View) Get(text string) (image []byte, ok bool) {
	if v == nil {
		return nil, false
	}
	return v.of.Get(v.keyOf(text))
}

// Put is Store.Put of a text.
func (v *View) Put(text string, image []byte) {
	if v != nil {
		v.of.Put(v.keyOf(text), image)
	}
}

func (v *View) keyOf(text string) Key {
	k := v.key
	k.Source = text
	return k
}
