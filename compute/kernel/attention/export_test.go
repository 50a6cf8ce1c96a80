package attention

// EditTexts has kernels loaded from edited texts.
func EditTexts(a *Attention, edit func(name, text string) string) {
	a.text = func(name string) (string, error) {
		text, err := ptx(name)
		return edit(name, text), err
	}
}
