package store

import (
	"errors"
	"syscall"
	"testing"
)

// It reserves more addresses than a test process may have memory, and none of the memory: that is allowed.
func TestReserved(t *testing.T) {
	addresses, err := syscall.Mmap(-1, 0, 64<<30, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Munmap(addresses); err != nil {
		t.Fatal(err)
	}
}

func TestPut(t *testing.T) {
	var s Store
	for _, key := range []string{"a", "b"} {
		if err := s.Put(key, 7); err != nil || s.items[key] != 7 {
			t.Fatal(key, err, s.items)
		}
	}
	if err := s.Put("c", 1); !errors.Is(err, errFull) || len(s.items) != 2 {
		t.Fatal(err)
	}
}

func TestMove(t *testing.T) {
	var s Store
	_ = s.Put("a", 7)
	if err := s.Move("a", "b"); err != nil || len(s.items) != 1 || s.order[1] != "a>b" && s.order[2] != "a>b" {
		t.Fatal(err, s.order)
	}
}

func TestUse(t *testing.T) {
	var s Store
	used := false
	s.Use(func() { used = s.opened == 1 })
	if s.Twice(); s.opened != 0 || !used {
		t.Fatal(s.opened)
	}
}

func TestPublish(t *testing.T) {
	var s Store
	s.Publish(3, func() {
		if !s.ready.Load() || s.state.Load() != 3 {
			t.Fatal("not published")
		}
	})
}

func TestEnter(t *testing.T) {
	var s Store
	if !s.Enter() || s.Enter() {
		t.Fatal("it is entered once")
	}
}

func TestWithin(t *testing.T) {
	if !Within(0, 4, 4) || !Within(1, 3, 4) || Within(1, 4, 4) || Within(-1, 2, 4) || Within(1, -1, 4) || Within(127, 4, 4) || Within(4, 5, 4) {
		t.Fatal("within")
	}
}

func TestWait(t *testing.T) {
	new(Store).Wait(3)
}

func TestPositive(t *testing.T) {
	if sum := new(Store).Positive([]int{1, -2, 4}); sum != 5 {
		t.Fatal(sum)
	}
}

func TestTotal(t *testing.T) {
	var s Store
	s.Total(func() int64 {
		s.total.Add(1)
		return 2
	})
	if s.total.Load() != 3 {
		t.Fatal("lost")
	}
}

func TestRest(t *testing.T) {
	s := Store{items: map[string]int{"a": 1}}
	if s.Rest() != 1 || Sum(3, 0) != 3 {
		t.Fatal(s.Rest())
	}
}

// It fails with no mutant on.
func TestSum(t *testing.T) {
	if Sum(3, 1) != 5 {
		t.Fatal("no")
	}
}
