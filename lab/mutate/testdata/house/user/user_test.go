package user

import (
	"testing"

	"example.org/house/store"
)

func TestFullStoreRefusesMoves(t *testing.T) {
	var s store.Store
	_ = s.Put("a", 1)
	_ = s.Put("b", 1)
	if s.Move("a", "c") == nil {
		t.Fatal("moved")
	}
}
