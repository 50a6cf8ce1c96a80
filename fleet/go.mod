module github.com/go-vram/vram/fleet

go 1.26.0

require github.com/stretchr/testify v1.12.1

require go.yaml.in/yaml/v3 v3.0.5 // indirect

// The modules of this repository are built together.
replace github.com/go-vram/vram => ..
