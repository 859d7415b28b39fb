package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// fields lists the keys that a struct has.
type fields struct {
	names []string
	index map[string][]int
}

func fieldsOf(t reflect.Type) fields {
	out := fields{index: map[string][]int{}}
	for _, f := range reflect.VisibleFields(t) {
		tag, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || tag == "-" || slices.Contains(strings.Split(opts, ","), "inline") {
			continue
		}
		if len(f.Index) > 1 && !inlined(t, f.Index) {
			continue
		}
		if tag == "" {
			tag = strings.ToLower(f.Name)
		}
		out.names = append(out.names, tag)
		out.index[tag] = f.Index
	}
	return out
}

// inlined reports whether the embedded structs on the way to a field are inline.
func inlined(t reflect.Type, index []int) bool {
	for i := 1; i < len(index); i++ {
		if !strings.Contains(t.FieldByIndex(index[:i]).Tag.Get("yaml"), ",inline") {
			return false
		}
	}
	return true
}

// suggest returns what to say about an unknown key: the closest known one, or
// all of them if there are few.
func suggest(key string, known []string) string {
	if best := Closest(key, known); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	if len(known) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(known))
	return "; known keys are " + strings.Join(sorted, ", ")
}

// Closest returns the word of known that s was probably meant to be, or "".
func Closest(s string, known []string) string {
	best, dist := "", max(1, utf8.RuneCountInString(s)/3)+1
	if len(s) > 100 {
		return ""
	}
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := distance(strings.ToLower(s), strings.ToLower(k)); d < dist {
			best, dist = k, d
		}
	}
	if best != "" {
		return best
	}
	for _, k := range slices.Sorted(slices.Values(known)) {
		if min(len(s), len(k)) >= 3 && (strings.HasPrefix(s, k) || strings.HasPrefix(k, s)) {
			return k
		}
	}
	return ""
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between two words.
func distance(s, t string) int {
	a, b := []rune(s), []rune(t)
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
