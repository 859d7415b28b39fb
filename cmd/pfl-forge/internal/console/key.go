package console

import "unicode/utf8"

// Name names a key that types no character.
type Name int

// The keys. Rune is the name of those that type a character.
const (
	Rune Name = iota
	Other
	Enter
	Escape
	Backspace
	Up
	Down
	PageUp
	PageDown
	Home
	End
	CtrlC
	CtrlD
	CtrlL
	Tab
)

// Key is a key that was pressed.
type Key struct {
	Name Name
	Rune rune // of Name Rune
}

// Is reports whether the key types a character.
func (k Key) Is(r rune) bool { return k.Name == Rune && k.Rune == r }

// controls has the keys that are one byte.
var controls = map[byte]Name{
	0x00: CtrlD, // what the kernel makes of one that was typed ahead, while the terminal was not raw
	0x03: CtrlC, 0x04: CtrlD, 0x0c: CtrlL, '\t': Tab, '\r': Enter, '\n': Enter, 0x08: Backspace, 0x7f: Backspace,
}

// sequences has the keys that are a sequence, without its ESC: those of xterm in both of its
// modes, and of the Linux console. One that is not here is Other.
var sequences = map[string]Name{
	"[A": Up, "OA": Up, "[B": Down, "OB": Down, "[5~": PageUp, "[6~": PageDown,
	"[H": Home, "OH": Home, "[1~": Home, "[F": End, "OF": End, "[4~": End,
}

// decode returns the first key of what was typed, and how many bytes that is; 0 if
// more have to come.
func decode(b []byte) (Key, int) {
	if len(b) == 0 {
		return Key{}, 0
	}
	if b[0] == 0x1b {
		return decodeEscape(b)
	}
	if name, ok := controls[b[0]]; ok {
		return Key{Name: name}, 1
	}
	if b[0] < ' ' {
		return Key{Name: Other}, 1
	}
	if !utf8.FullRune(b) {
		return Key{}, 0
	}
	r, n := utf8.DecodeRune(b)
	return Key{Name: Rune, Rune: r}, n
}

// decodeEscape decodes a sequence that begins with ESC, such as that of an
// arrow key, and returns the key and its length in bytes. The length is 0 if
// more bytes are needed. A NUL after ESC means that nothing more came in time:
// then it is the Escape key.
func decodeEscape(b []byte) (Key, int) {
	if len(b) == 1 {
		return Key{}, 0
	}
	if b[1] == 0 {
		return Key{Name: Escape}, 2
	}
	if b[1] != '[' && b[1] != 'O' {
		return Key{Name: Escape}, 1
	}
	for i := 2; i < len(b); i++ {
		if c := b[i]; c >= 0x40 && c <= 0x7e || c == 0 {
			name, ok := sequences[string(b[1:i+1])]
			if !ok {
				name = Other
			}
			return Key{Name: name}, i + 1
		}
	}
	return Key{}, 0
}
