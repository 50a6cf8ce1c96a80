package page_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/monitor/page"
)

// The page is one handler of a service.
func ExampleHandler() {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = dev.Close() }()
	mux := http.NewServeMux()
	mux.Handle("/debug/vram/", page.Handler(dev))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/vram/", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
