package workspace

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/slug"
)

// unnamed begins the ids of drafts whose names have no spelling in Latin letters.
const unnamed = "intent"

// draftID returns the id of the intent that a draft asks for. The file's name without .md
// is the id. A name in another script than ASCII cannot be one, and is spelled in ASCII
// instead (変更.md asks for bian-geng), always the same way. A name in ASCII that is no id
// is a problem: who can type the id is asked for it.
func draftID(shownPath string) (forge.IntentID, *Problem) {
	name := path.Base(shownPath)
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	id, err := forge.ParseIntentID(stem)
	if err != nil && spellable(stem) {
		id, err = forge.IntentID(slug.Named(unnamed, stem)), nil
	}
	if err == nil && ext == ".md" {
		return id, nil
	}
	p := &Problem{Path: shownPath, Field: "id", Reason: fmt.Sprintf("the file ends in %q, not in .md", ext)}
	if err != nil {
		p.Reason = reasonOf(err)
	}
	better := slug.Make(stem)
	if better == "" {
		better = "my-change"
	}
	p.Hint = fmt.Sprintf("the file's name is the intent's id: a-z, 0-9 and -, at most %d characters; rename it to %s.md", forge.MaxIDLength, better)
	return "", p
}

// spellable reports whether a file's name is text of another script, not ASCII or bytes
// that are no text.
func spellable(stem string) bool {
	return slug.Foreign(stem) && utf8.ValidString(stem) && !strings.ContainsFunc(stem, unicode.IsControl)
}
