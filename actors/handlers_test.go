package actors

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Importing the package registers the handlers that the linked framework registers, and no others.
func TestHandlersThatImportingRegisters(t *testing.T) {
	for path, want := range map[string]string{"/debug/vars": debugVars, "/debug/pprof/": "", "/metrics": "", "/": ""} {
		_, pattern := http.DefaultServeMux.Handler(httptest.NewRequest(http.MethodGet, path, http.NoBody))
		assert.Equal(t, want, pattern, path)
	}
}
