//go:build gpu

package fakecuda_test

// hardware says that the tests run on the machine's real driver instead of the fake.
const hardware = true
