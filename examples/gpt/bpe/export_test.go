package bpe

// Words divides a text into words.
func Words(text string) (all []string) {
	for len(text) > 0 {
		n := wordLen(text)
		all, text = append(all, text[:n]), text[n:]
	}
	return all
}
