// Package jsonform defines JSON forms of values that encoding/json would write otherwise.
package jsonform

// Error returns an error's text, and nil for no error: encoding/json would write the fields of the error.
func Error(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}

// List returns a list that is [] in JSON, and not null, where it has no elements.
func List[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}
