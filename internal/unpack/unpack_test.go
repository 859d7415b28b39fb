package unpack_test

import (
	"encoding/binary"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/unpack"
)

// TestReader takes off what was put there, and notices what is cut off anywhere.
func TestReader(t *testing.T) {
	t.Parallel()
	data := binary.AppendUvarint(nil, 300)
	data = append(binary.AppendUvarint(data, 5), "hello"...)
	data = append(data, "end"...)
	for n := range len(data) + 1 {
		r := unpack.New(data[:n])
		number, text, end := r.Number(), r.Text(), r.Bytes(3)
		if whole := n == len(data); r.Bad() == whole || whole && (number != 300 || text != "hello" || end != "end" || r.Left() > 0) {
			t.Errorf("of %d bytes: %d, %q, %q, bad %t", n, number, text, end, r.Bad())
		}
	}
}

// TestReaderOfLies: a length that is longer than what there is reserves
// nothing, and a number without an end is none.
func TestReaderOfLies(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"a long text":      binary.AppendUvarint(nil, 1<<62),
		"an endless one":   {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1},
		"nothing":          nil,
		"a number cut off": {0x80},
	} {
		if r := unpack.New(data); len(r.Text()) > 0 || !r.Bad() || r.Left() > 0 || r.Number() != 0 {
			t.Errorf("%s is read", name)
		}
	}
}
