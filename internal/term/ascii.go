package term

import (
	"fmt"
	"unicode/utf8"
)

// ASCII returns a JSON text with all but printable ASCII escaped: the same
// document, which steers no terminal.
func ASCII(text []byte) []byte {
	safe := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r >= ' ' && r <= '~':
			safe = append(safe, text[0])
		case r > 0xffff:
			r -= 0x10000
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
		text = text[n:]
	}
	return safe
}
