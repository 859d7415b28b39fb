// Package drafts reads drafts: Markdown files in .forge/intent-drafts, each of which
// asks for an intent.
//
// A draft has a body, which says what is wanted, and may have front matter in YAML
// before it, with the fields of document.Draft:
//
//	---
//	recipe: rename
//	depends_on: [format-code]
//	---
//	# Rename greeting
//
// The file's name is the intent's id. [Reader.Read] makes an input of each draft, or
// problems; [CheckDependencies] then takes out those that would wait for ever, and
// puts the others in order; [Reader.Imported] moves a draft away once its intent is
// submitted. The same file always makes the same event, with the same origin, so a
// draft that is read twice makes one intent.
package drafts
