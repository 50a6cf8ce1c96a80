package attention

// EditTexts has kernels loaded from edited texts.
func EditTexts(a *Attention, edit func(name, text string) string) {
	a.text = func(name string) (string, error) {
		text, err := ptx(name)
		return edit(name, text), err
	}
}

// UseGroups says whether kernels by warpgroups are taken, where the device has them.
func UseGroups(a *Attention, use bool) { a.groups = a.groups && use }

// SetMultiprocessors has blocks take more work one after the other than on the device.
func SetMultiprocessors(a *Attention, count int64) { a.multiprocessors = count }

// SetCapability has the kernels of a device of another compute capability: 80 is 8.0.
func SetCapability(a *Attention, capability int) { a.capability = capability }
