// Package schemas has a JSON Schema (draft 2020-12) for every kind of file that people
// see: those of .forge and .e8, the front matter of drafts, and pfl-forge.yaml.
//
// They are for editors and other programs; this program goes by its types, of which
// the schemas are made. After a change of a type:
//
//	go test ./forgedir/schemas -rewrite
//
// Package schematest checks files by them, in tests.
package schemas
