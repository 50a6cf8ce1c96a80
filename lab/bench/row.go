package bench

// Row is one line of the results. The command prints its JSON form.
type Row struct {
	Scenario    string  `json:"scenario"`
	Impl        string  `json:"impl"`
	SizeBytes   int64   `json:"size_bytes"` // 0 where sizes vary
	Count       int     `json:"n"`          // free ranges, batch size or live set of the scenario
	Goroutines  int     `json:"goroutines"`
	NsPerOp     float64 `json:"ns_per_op"`
	AllocsPerOp float64 `json:"allocs_per_op"` // on Go's heap
	P50Nanos    float64 `json:"p50_ns"`
	P99Nanos    float64 `json:"p99_ns"`
	P999Nanos   float64 `json:"p999_ns"`

	NodeVisitsPerOp *float64 `json:"node_visits_per_op,omitempty"` // of the search for free ranges; scenario holes
	DriverNsPerOp   *float64 `json:"driver_ns_per_op,omitempty"`   // in driver calls, modelled where the driver is; scenario warmup
	// DriverCallsPerOp are those once the load runs warm; scenarios record, use and transfer.
	DriverCallsPerOp *float64 `json:"driver_calls_per_op,omitempty"`
}

// The implementations that rows name.
const (
	ImplVRAM     = "vram"
	ImplMutex    = "mutex"
	ImplVRAMCold = "vram-cold" // a device that was not warmed up
	ImplAtomics  = "atomics"   // of the calibration

	ImplVRAMAlloc = "vram-alloc" // Stream.Alloc, compared with richer calls
)

// ScenarioCalibration names the rows that the others are compared with.
const ScenarioCalibration = "calibration"

// Calibration is ns_per_op of the calibration row, 0 where there is none.
func Calibration(rows []Row) float64 {
	for _, r := range rows {
		if r.Scenario == ScenarioCalibration {
			return r.NsPerOp
		}
	}
	return 0
}

func named(row Row, impl string) Row {
	row.Impl = impl
	return row
}
