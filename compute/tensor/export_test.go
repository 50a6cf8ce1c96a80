package tensor

// ListLen is the length of a scope's list.
func ListLen(s *Scope) int { return len(s.made) }
