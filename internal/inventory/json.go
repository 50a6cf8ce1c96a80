package inventory

import (
	"encoding/json"

	"github.com/go-vram/vram/internal/jsonform"
)

// MarshalJSON implements json.Marshaler: the age is in seconds.
func (b Buffer) MarshalJSON() ([]byte, error) {
	type plain Buffer
	return json.Marshal(struct {
		plain
		Age    float64 `json:"age_seconds"`
		Tenant string  `json:"tenant"`
	}{plain(b), b.Age.Seconds(), b.Tenant})
}

// MarshalJSON implements json.Marshaler: the age is in seconds.
func (g Group) MarshalJSON() ([]byte, error) {
	type plain Group
	return json.Marshal(struct {
		plain
		Age float64 `json:"age_seconds"`
	}{plain(g), g.Age.Seconds()})
}

// MarshalJSON implements json.Marshaler: an empty list is [].
func (l List) MarshalJSON() ([]byte, error) {
	type plain List
	l.Buffers, l.Unread = jsonform.List(l.Buffers), jsonform.List(l.Unread)
	return json.Marshal(plain(l))
}
