//go:build !linux

package fleet_test

func child(string, string) {}
