package fakecuda

// Forget forgets the libraries that this process has compiled.
func Forget() { compiled.Store(nil) }
