// Package words cuts a text of any language into the words by which texts are compared:
// what a finding has to do with a request, whether two titles say the same.
//
// Unicode says where words end ([UAX #29], by a library). Where a script writes without spaces, or
// puts its endings to the words, it cannot know that: there a word is two characters that stand
// side by side, which finds 画面 in ログイン画面 and in 画面を直す.
//
// Words are in lower case and without differences of width. What is too short to mean anything is
// dropped: Latin, Greek and other letters up to three, and pairs of hiragana, which are mostly
// grammar.
//
// [UAX #29]: https://unicode.org/reports/tr29/
package words

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// shortest is how many characters a word of an alphabet has at least.
const shortest = 4

// dense are the scripts whose words do not stand apart. Katakana is none of them: it spells
// single words.
var dense = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// Set returns the words of a text. It is the only place that knows where words end: what compares
// texts in another way would find other neighbours than the rest of the program, and find none
// in some languages.
func Set(text string) map[string]bool {
	set := map[string]bool{}
	var run []rune // of characters of dense scripts that stand side by side
	// Two characters are the shortest unit that carries a meaning in these scripts;
	// longer ones would have to begin at the same place in both texts to be found.
	flush := func() {
		if len(run) == 1 && !unicode.Is(unicode.Hiragana, run[0]) {
			set[string(run)] = true
		}
		for i := 1; i < len(run); i++ {
			if !unicode.Is(unicode.Hiragana, run[i-1]) || !unicode.Is(unicode.Hiragana, run[i]) {
				set[string(run[i-1:i+1])] = true
			}
		}
		run = run[:0]
	}
	for tokens := words.FromString(strings.ToLower(norm.NFKC.String(text))); tokens.Next(); {
		for _, w := range strings.FieldsFunc(tokens.Value(), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) }) {
			first, _ := utf8.DecodeRuneInString(w)
			// The library cuts Han and hiragana into single characters, and
			// Hangul at spaces: both become one run again.
			if unicode.In(first, dense...) {
				run = append(run, []rune(w)...)
				continue
			}
			flush()
			if utf8.RuneCountInString(w) >= shortest || unicode.Is(unicode.Katakana, first) {
				set[w] = true
			}
		}
		// A space or a full stop ends a run. Without that, the last character
		// of a word and the first of the next would be taken for one.
		if !strings.ContainsFunc(tokens.Value(), unicode.IsLetter) {
			flush()
		}
	}
	flush()
	return set
}

// Sorted returns the words of a text, in order and each once; the text itself if
// it has none.
func Sorted(text string) []string {
	list := slices.Sorted(maps.Keys(Set(text)))
	if len(list) == 0 {
		return []string{text}
	}
	return list
}

// Common returns how many words of a list are in a set.
func Common(list []string, set map[string]bool) int {
	n := 0
	for _, w := range list {
		if set[w] {
			n++
		}
	}
	return n
}
