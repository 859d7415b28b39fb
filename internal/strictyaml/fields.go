package strictyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// field is a key of a struct.
type field struct {
	key string
	// index leads to the struct's field, through those that are inline (see
	// reflect.Value.FieldByIndex).
	index []int
	// omitEmpty is set where Encode leaves out an empty value.
	omitEmpty bool
}

// fieldsOf returns the keys of a struct in the order of its fields, those of inline
// structs in place of the field.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for f := range t.Fields() {
		key, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		options := strings.Split(opts, ",")
		switch {
		case slices.Contains(options, "inline"):
			for _, inner := range fieldsOf(f.Type) {
				inner.index = slices.Concat(f.Index, inner.index)
				out = append(out, inner)
			}
			continue
		case !f.IsExported(), key == "-":
			continue
		case key == "":
			key = strings.ToLower(f.Name)
		}
		out = append(out, field{key, f.Index, slices.Contains(options, "omitempty")})
	}
	return out
}

// keysOf returns the keys of a struct.
func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// suggest returns the end of an error about an unknown key: the key that was
// probably meant, or else all of them. It is empty for a mapping that has no
// keys at all.
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

// Closest returns the word of known that s was probably meant to be: one that differs in
// at most a third of its letters, whatever their case, or one that s begins or that begins
// s. It is empty if there is none.
func Closest(s string, known []string) string {
	if len(s) > 100 { // no slip of any key, and distance takes its time
		return ""
	}
	best, dist := "", max(1, utf8.RuneCountInString(s)/3)+1
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

// distance returns how many insertions, deletions, replacements and swaps of
// neighbours make t of s (the optimal string alignment distance). It counts a
// swap as one, as libraries for this often do not: swaps are the most common
// slips of fingers.
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
