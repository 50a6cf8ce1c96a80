package acceptance_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// boundary is what the documentation of a numeric field promises: the values from least to most are taken, others are refused
// with a *ConfigError. NaN always is. A value of unusable is refused by the first use of the device.
type boundary struct {
	least, most float64
	unusable    error
	small       bool // 1 is refused by the first use, too: less than one page
}

const unbounded = math.MaxFloat64

// atLeast0 is a field of which only negative values are refused.
var atLeast0 = boundary{least: 0, most: unbounded}

// boundaries lists the numeric fields of Config by their paths.
func boundaries() map[string]boundary {
	names := func(count float64) boundary { return boundary{least: 0, most: count - 1} }
	return map[string]boundary{
		"Ordinal":                  {least: 0, most: unbounded, unusable: vram.ErrNoDevice},
		"LimitBytes":               {least: 0, most: unbounded, small: true},
		"MemoryFraction":           {least: 0, most: 1},
		"Footprint":                names(3),
		"Segments":                 names(3),
		"Waits":                    names(3),
		"Stats":                    names(3),
		"FaultPlaces":              names(3),
		"StreamCacheBytes":         atLeast0,
		"PoolCacheBytes":           atLeast0,
		"ReleaseAfter":             {least: -unbounded, most: unbounded},
		"Warm.Bytes":               {least: 1, most: unbounded},
		"Warm.Count":               atLeast0,
		"SampleBytes":              atLeast0,
		"Tuning.SegmentBytes":      atLeast0,
		"Tuning.StreamCacheBlocks": atLeast0,
		"Tuning.PoolCacheBlocks":   atLeast0,
		"Tuning.PressureMark":      {least: 0, most: 1},
	}
}

// numbers calls visit with each numeric field of a struct, and of the structs and elements in it.
func numbers(path string, v reflect.Value, visit func(path string, field reflect.Value)) {
	switch {
	case v.CanInt() || v.CanUint() || v.CanFloat():
		visit(path, v)
	case v.Kind() == reflect.Pointer && !v.IsNil():
		numbers(path, v.Elem(), visit)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && v.Len() > 0:
		numbers(path, v.Index(0), visit)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				at := f.Name
				if path != "" {
					at = path + "." + at
				}
				numbers(at, v.Field(i), visit)
			}
		}
	}
}

// extremes sets a numeric field to each of its extreme values, and to the ones about 0.
func extremes(field reflect.Value, try func(value float64)) {
	switch {
	case field.CanFloat():
		for _, x := range []float64{
			math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
			math.Copysign(0, -1), -1, 0, 0.5, 1, math.Nextafter(1, 2),
		} {
			field.SetFloat(x)
			try(x)
		}
	case field.CanUint():
		for _, x := range []uint64{0, 1, 2, 3, 1<<field.Type().Bits() - 1} {
			field.SetUint(x)
			try(float64(x))
		}
	default:
		for _, x := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 2, math.MaxInt32, math.MaxInt32 + 1, 1 << 62, math.MaxInt64 - 1, math.MaxInt64} {
			field.SetInt(x)
			try(float64(x))
		}
	}
}

// judge compares the answer to a value with the table.
func (b boundary) judge(t *testing.T, path string, value float64, err error) (taken bool) {
	t.Helper()
	var bad *vram.ConfigError
	switch {
	case !(value >= b.least && value <= b.most): // also NaN
		if assert.ErrorAs(t, err, &bad, "%s = %v", path, value) {
			assert.NotEmpty(t, bad.Want)
			assert.NotEmpty(t, bad.Error())
		}
		return false
	case err != nil && b.unusable != nil && value > 0:
		assert.ErrorIs(t, err, b.unusable, "%s = %v", path, value)
		return false
	case err != nil && (b.small || path == "MemoryFraction") && value > 0:
		assert.ErrorAs(t, err, &bad, "%s = %v", path, value)
		return false
	}
	return assert.NoError(t, err, "%s = %v", path, value)
}

// use works with a device for a while.
func use(d *vram.Device) error {
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	for _, bytes := range []int64{700, 3 * mib, 40 * mib} {
		b, err := s.Alloc(bytes)
		if err != nil {
			return err
		}
		if err := b.Free(); err != nil {
			return err
		}
	}
	time.Sleep(time.Second) //nolint:forbidigo // virtual: ticks
	n := d.Stats()
	_, _, _, _ = n.String(), n.HitRate(), n.Fragmentation(), n.Efficiency()
	_ = d.Info()
	if n.Panics > 0 {
		return errors.New("a panic was recovered")
	}
	return s.Close()
}

// Each numeric field of Config has boundaries, and each extreme value, of a field of Config as of Settings, is taken or refused as
// they say, without a panic.
func TestConfigsBoundaries(t *testing.T) {
	t.Parallel()
	table := boundaries()
	var cfg vram.Config
	cfg.Warm = []vram.Demand{{Bytes: 1, Count: 1}}
	var paths []string
	numbers("", reflect.ValueOf(&cfg).Elem(), func(path string, _ reflect.Value) { paths = append(paths, path) })
	for path := range table {
		assert.Contains(t, paths, path, "a field that is no more")
	}
	for _, path := range paths {
		require.Contains(t, table, path, "a field without boundaries")
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tryConfig(t, path, table[path]) })
		})
	}
}

func tryConfig(t *testing.T, path string, b boundary) {
	t.Helper()
	var cfg vram.Config
	if path == "Warm.Bytes" || path == "Warm.Count" {
		cfg.Warm = []vram.Demand{{Bytes: 1, Count: 1}}
	}
	numbers("", reflect.ValueOf(&cfg).Elem(), func(at string, field reflect.Value) {
		if at != path {
			return
		}
		extremes(field, func(value float64) {
			cfg.Driver = sim.New(sim.Config{TotalBytes: gib})
			d, err := vram.Open(cfg)
			if err == nil {
				err = use(d)
			}
			if b.judge(t, path, value, err); d != nil {
				_ = d.Close()
			}
		})
	})
}

// allSettings changes every field of Settings.
func allSettings() vram.Settings {
	return vram.Settings{
		LimitBytes: new(512 * mib), MemoryFraction: new(0.5), Footprint: new(vram.Lean), StreamCacheBytes: new(int64), PoolCacheBytes: new(int64),
		ReleaseAfter: new(time.Second), Stats: new(vram.StatsOn), Waits: new(vram.WaitsNever), SampleBytes: new(int64), Tuning: new(vram.Tuning),
	}
}

// Each numeric field of Settings has the boundaries of the field of Config of that name; a refused change changes nothing.
func TestSettingsBoundaries(t *testing.T) {
	t.Parallel()
	table := boundaries()
	var paths []string
	all := allSettings()
	v := reflect.ValueOf(&all).Elem()
	for i := range v.NumField() {
		require.False(t, v.Field(i).IsNil(), "%s is not tried", v.Type().Field(i).Name)
	}
	numbers("", v, func(path string, _ reflect.Value) { paths = append(paths, path) })
	require.GreaterOrEqual(t, len(paths), v.NumField())
	for _, path := range paths {
		require.Contains(t, table, path, "a field without boundaries")
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { trySettings(t, path, table[path]) })
		})
	}
}

func trySettings(t *testing.T, path string, b boundary) {
	t.Helper()
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{TotalBytes: gib})})
	require.NoError(t, err)
	require.NoError(t, use(d))
	all := allSettings()
	numbers("", reflect.ValueOf(&all).Elem(), func(at string, field reflect.Value) {
		if at != path {
			return
		}
		extremes(field, func(value float64) {
			var one vram.Settings // that field alone
			from, to := reflect.ValueOf(&all).Elem(), reflect.ValueOf(&one).Elem()
			for i := range from.NumField() {
				if name := from.Type().Field(i).Name; name == path || name+"." == path[:min(len(path), len(name)+1)] {
					to.Field(i).Set(from.Field(i))
				}
			}
			before := d.Stats().LimitBytes
			err := d.Reconfigure(one)
			taken := b.judge(t, path, value, err)
			if !taken {
				assert.Equal(t, before, d.Stats().LimitBytes, "a refused change changes nothing")
			}
			assert.NoError(t, use(d), "%s = %v", path, value)
		})
	})
	require.NoError(t, d.Close())
}

// The sizes and counts of requests are refused by typed errors where they cannot be, without a panic or an overflow.
func TestRequestsBoundaries(t *testing.T) {
	t.Parallel()
	known := []error{vram.ErrNegative, vram.ErrTooLarge, vram.ErrOutOfMemory, vram.ErrQuota, vram.ErrWouldDeadlock}
	synctest.Test(t, func(t *testing.T) {
		d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{TotalBytes: gib})})
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		s.Exclusive()
		typed := func(what string, value float64, err error) {
			var bad *vram.ConfigError
			var align *vram.AlignError
			if err != nil && !errors.As(err, &bad) && !errors.As(err, &align) {
				ok := slices.ContainsFunc(known, func(want error) bool { return errors.Is(err, want) })
				assert.True(t, ok, "%s = %v: %T %v", what, value, err, err)
			}
			assert.Zero(t, d.Stats().Panics, "%s = %v", what, value)
		}
		quota := vram.Quota{}
		numbers("Quota", reflect.ValueOf(&quota).Elem(), func(path string, field reflect.Value) {
			extremes(field, func(value float64) {
				guest, err := d.Tenant(fmt.Sprint(path, value), quota)
				typed(path, value, err)
				assert.Equal(t, value < 0, err != nil, "%s = %v: %v", path, value, err)
				if err == nil {
					b, err := s.AllocFor(t.Context(), vram.Request{Bytes: 1000, Tenant: guest})
					if typed(path, value, err); err == nil {
						assert.NoError(t, b.Free())
					}
				}
			})
			field.SetZero()
		})
		want := vram.Request{Bytes: 1}
		numbers("Request", reflect.ValueOf(&want).Elem(), func(path string, field reflect.Value) {
			kept := field.Int()
			extremes(field, func(value float64) {
				b, err := s.AllocFor(t.Context(), want)
				if typed(path, value, err); err == nil {
					assert.NoError(t, b.Free())
				}
				if path == "Request.Priority" {
					assert.NoError(t, err)
					return
				}
				assert.Equal(t, value < 0 || value > float64(gib) || path == "Request.Align" && value > 2*float64(mib), err != nil, "%s = %v: %v", path, value, err)
				for _, sizes := range [][]int64{{want.Bytes}, {want.Bytes, 1}, {want.Bytes, want.Bytes}, {want.Bytes, want.Bytes, want.Bytes}} {
					dst := make([]vram.Buffer, len(sizes))
					err := s.AllocBatch(dst, sizes)
					if typed(path, value, err); err == nil {
						assert.NoError(t, s.FreeBatch(dst))
					}
				}
				r, err := d.Reserve(t.Context(), want.Bytes)
				if typed("Reserve", value, err); err == nil {
					r.Release()
				}
				_, err = d.Trim(t.Context(), want.Bytes)
				typed("Trim", value, err)
			})
			field.SetInt(kept)
		})
		demand := vram.Demand{Bytes: 1, Count: 1}
		for range 2 { // the other one is 1, then much
			numbers("Demand", reflect.ValueOf(&demand).Elem(), func(path string, field reflect.Value) {
				kept := field.Int()
				extremes(field, func(value float64) {
					err := d.Warm(t.Context(), demand, demand)
					var bad *vram.ConfigError
					var full *vram.LimitError
					assert.True(t, err == nil || errors.As(err, &bad) || errors.As(err, &full), "%s = %v: %T %v", path, value, err, err)
					_, _ = d.Trim(t.Context(), 0)
				})
				field.SetInt(kept)
			})
			demand = vram.Demand{Bytes: 1 << 61, Count: 1 << 61}
		}
		require.NoError(t, use(d))
		require.NoError(t, d.Close())
	})
}
