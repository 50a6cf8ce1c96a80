package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-vram/vram"
)

// tenantHeader says whose a request is. A service in the open would take it from what authenticates the client.
const tenantHeader = "X-Tenant"

// weight is what a tenant has a right to, beside the others.
type weight struct {
	name  string
	parts int
}

// parseTenants reads weights as "gold=4,silver=2,bronze=1". Nothing is no tenants.
func parseTenants(text string) ([]weight, error) {
	if text == "" {
		return nil, nil
	}
	var all []weight
	seen := map[string]bool{}
	for one := range strings.SplitSeq(text, ",") {
		name, parts, _ := strings.Cut(one, "=")
		n, err := strconv.Atoi(parts)
		switch {
		case name == "" || err != nil || n < 1 || n > 1_000_000:
			return nil, fmt.Errorf("%q is no tenant, want name=weight with a weight of 1 to 1000000", one)
		case seen[name]:
			return nil, fmt.Errorf("%q is named twice", name)
		}
		seen[name] = true
		all = append(all, weight{name, n})
	}
	return all, nil
}

// tenant is whom requests are charged to, and what it has had.
type tenant struct {
	name    string
	account *vram.Tenant // nil: nobody
	share   float64      // of the device's memory
	waited  prometheus.Observer
	seconds prometheus.Observer

	answered   atomic.Uint64
	heldKiBMil atomic.Int64 // KiB times milliseconds: enough for centuries
}

// served counts memory that a request had.
func (t *tenant) served(bytes int64, held time.Duration) {
	t.heldKiBMil.Add(int64(float64(bytes) / (1 << 10) * held.Seconds() * 1e3))
}

// byteSeconds is how much memory the tenant's requests had, times for how long.
func (t *tenant) byteSeconds() float64 { return float64(t.heldKiBMil.Load()) * (1 << 10) / 1e3 }

// errTenant says that a request names a tenant that the service does not know.
var errTenant = errors.New(tenantHeader + " names no tenant of this service")

// openTenants makes the tenants' accounts: each has a right to its part of the limit, and may borrow what the others leave. With
// Hard it may have that part and no more, so that who asks for more waits for its own requests and for nobody else's.
func (sv *Service) openTenants(weights []weight) (map[string]*tenant, error) {
	if len(weights) == 0 {
		return map[string]*tenant{"": sv.newTenant("", nil, 1)}, nil
	}
	parts := 0
	for _, w := range weights {
		parts += w.parts
	}
	limitBytes := sv.device.Stats().LimitBytes
	all := map[string]*tenant{}
	for _, w := range weights {
		share := float64(w.parts) / float64(parts)
		quota := vram.Quota{ShareBytes: int64(share * float64(limitBytes))}
		if sv.settings.Hard {
			quota.LimitBytes = quota.ShareBytes
		}
		account, err := sv.device.Tenant(w.name, quota)
		if err != nil {
			return nil, err
		}
		all[w.name] = sv.newTenant(w.name, account, share)
	}
	return all, nil
}

func (sv *Service) newTenant(name string, account *vram.Tenant, share float64) *tenant {
	return &tenant{
		name: name, account: account, share: share,
		waited: sv.meters.waited.WithLabelValues(name), seconds: sv.meters.seconds.WithLabelValues(name),
	}
}

// tenantOf is the tenant that a request names.
func (sv *Service) tenantOf(name string) (*tenant, error) {
	if t, ok := sv.tenants[name]; ok {
		return t, nil
	}
	return nil, errTenant
}
