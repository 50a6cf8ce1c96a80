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

// tenantHeader names a request's tenant. A public service would take the tenant from the client's authentication.
const tenantHeader = "X-Tenant"

// weight is a tenant's part in relation to the other tenants.
type weight struct {
	name  string
	parts int
}

// parseTenants reads weights as "gold=4,silver=2,bronze=1". An empty text means no tenants.
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

// tenant is the account of requests, with the sums of their memory.
type tenant struct {
	name    string
	account *vram.Tenant // nil: no tenant
	share   float64      // of the memory for caches
	waited  prometheus.Observer
	first   prometheus.Observer
	between prometheus.Observer

	answered   atomic.Uint64
	tokens     atomic.Uint64 // of answers, also of those in progress
	heldKiBMil atomic.Int64  // KiB times milliseconds: enough for centuries
}

// served adds the memory of a finished request.
func (t *tenant) served(bytes int64, held time.Duration) {
	t.heldKiBMil.Add(int64(float64(bytes) / (1 << 10) * held.Seconds() * 1e3))
}

// byteSeconds returns the sum of the tenant's memory over time.
func (t *tenant) byteSeconds() float64 { return float64(t.heldKiBMil.Load()) * (1 << 10) / 1e3 }

// errTenant reports an unknown tenant.
var errTenant = errors.New(tenantHeader + " names no tenant of this service")

// openTenants opens the tenants' accounts: each has a share of the memory for caches, and may borrow unused memory. With Hard the share is
// a limit, so that a tenant that wants more waits for its own requests only.
func (sv *Service) openTenants(weights []weight) (map[string]*tenant, error) {
	if len(weights) == 0 {
		return map[string]*tenant{"": sv.newTenant("", nil, 1)}, nil
	}
	parts := 0
	for _, w := range weights {
		parts += w.parts
	}
	all := map[string]*tenant{}
	for _, w := range weights {
		share := float64(w.parts) / float64(parts)
		quota := vram.Quota{ShareBytes: int64(share * float64(sv.cacheBytes))}
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
		waited: sv.meters.waited.WithLabelValues(name), first: sv.meters.first.WithLabelValues(name), between: sv.meters.between.WithLabelValues(name),
	}
}

// tenantOf returns the tenant of a request.
func (sv *Service) tenantOf(name string) (*tenant, error) {
	if t, ok := sv.tenants[name]; ok {
		return t, nil
	}
	return nil, errTenant
}
