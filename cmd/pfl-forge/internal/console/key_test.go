package console

import (
	"slices"
	"testing"
)

// keysOf decodes what was typed until more has to come.
func keysOf(text string) []Key {
	b := []byte(text)
	var list []Key
	for {
		k, n := decode(b)
		if n == 0 {
			return list
		}
		list = append(list, k)
		b = b[n:]
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		typed string
		want  []Key
	}{
		{"aß世", []Key{{Rune: 'a'}, {Rune: 'ß'}, {Rune: '世'}}},
		{"\r\n\x7f\x03\x04", []Key{{Name: Enter}, {Name: Enter}, {Name: Backspace}, {Name: CtrlC}, {Name: CtrlD}}},
		{"\x1b[A\x1bOB\x1b[5~x", []Key{{Name: Up}, {Name: Down}, {Name: PageUp}, {Rune: 'x'}}},
		{"\x1b[1;5Cx", []Key{{Name: Other}, {Rune: 'x'}}},
		{"\x1b\x00x", []Key{{Name: Escape}, {Rune: 'x'}}},
		{"\x1bx", []Key{{Name: Escape}, {Rune: 'x'}}},
		{"a\x1b[", []Key{{Rune: 'a'}}}, // more has to come
		{"\xe4\xb8", nil},
		{"\xff", []Key{{Rune: '\uFFFD'}}},
		{"\x01", []Key{{Name: Other}}},
	} {
		if got := keysOf(c.typed); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.typed, got, c.want)
		}
	}
}

// Whatever is typed, decoding goes on and ends.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x1b[1;5Cabc\x1b\x00\xe4\xb8"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			_, n := decode(b)
			if n > len(b) || n < 0 {
				t.Fatalf("%q: %d", b, n)
			}
			if n == 0 {
				return
			}
			b = b[n:]
		}
	})
}
