package magazine

import (
	"encoding/json"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/jsonform"
)

// MarshalJSON implements json.Marshaler: the error is its text.
func (e *FreeError) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Err       any        `json:"err"`
		Allocated site.Stack `json:"allocated"`
		Freed     site.Stack `json:"freed"`
	}{jsonform.Error(e.Err), e.Allocated, e.Freed})
}
