// Package slug makes ids of what people write: titles, file names, the names of folders
// and of other systems' events.
//
// An id is part of branches, file names and NATS subjects, so that it holds only a-z, 0-9
// and hyphens (see [forge.ParseIntentID]). People write in every script. This package
// spells their text in Latin letters before [forge.Slug] makes an id of it:
//
//	Écrire le manuel    ecrire-le-manuel
//	Größe ändern        grosse-andern
//	変更                bian-geng
//	Большой объём       bolshoi-obiom
//	🚀                  intent-ebbc0b28    (Named("intent", "🚀"))
//
// The spelling knows no languages: a Chinese character has its Mandarin reading also in a
// Japanese title, and ü is u. It is there to be recognized, not to be correct. Equal text
// gives equal ids, however its accents are encoded; different texts may give the same id,
// and whoever needs unique ones checks that.
//
// Package forge itself imports the standard library only and keeps [forge.Slug], which
// drops what is not ASCII. Whatever turns a person's text into an id calls this package.
package slug

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/mozillazg/go-unidecode"
	"golang.org/x/text/unicode/norm"

	"github.com/pfl-forge/pfl-forge"
)

// Make returns an id that is spelled like text, of at most forge.MaxIDLength bytes. It is
// empty if nothing in text has a spelling, as in emoji.
func Make(text string) string { return forge.Slug(latin(text)) }

// Named returns Make(text), or, where that is empty, prefix, a hyphen and eight
// hexadecimal digits that follow from text. The prefix must be an id. For a text without
// any visible character it returns the prefix alone.
func Named(prefix, text string) string {
	if id := Make(text); id != "" {
		return id
	}
	text = norm.NFC.String(strings.TrimSpace(text))
	if text == "" {
		return prefix
	}
	sum := sha256.Sum256([]byte(text))
	return prefix + "-" + hex.EncodeToString(sum[:4])
}

// Foreign reports whether text has characters outside ASCII, which an id cannot hold.
func Foreign(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// latin returns text in ASCII, as it is read. Compatibility forms become the plain
// characters first, so that e and a combining accent are one é.
func latin(text string) string {
	if !Foreign(text) {
		return text
	}
	var b strings.Builder
	for _, r := range norm.NFKC.String(text) {
		spelled := unidecode.Unidecode(string(r))
		if unicode.IsLetter(r) && r > unicode.MaxASCII {
			spelled = strings.Map(dropMark, spelled) // the ' of "ob'iom" divides no words
		}
		b.WriteString(spelled)
	}
	return b.String()
}

// dropMark removes the apostrophes that stand for soft signs and glottal stops.
func dropMark(r rune) rune {
	if r == '\'' || r == '`' || r == '"' {
		return -1
	}
	return r
}
