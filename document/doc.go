// Package document is the model of everything that people and other systems
// read and write about intents: which documents there are, the names of their
// fields in JSON and YAML, and who may set which field.
//
// # Fields that can be set
//
// Fields is a table with one row for each field of an intent that a person or a system
// may set when it is submitted. Four readers go by it and have no list of their own: the
// flags of pfl-forge create, the front matter of drafts, submissions (JSON and
// CloudEvents) and the comparison of an edited file with the one before. The schema of
// submissions in docs/asyncapi.yaml and the table of docs/guide-local.md are made of it.
//
// # Documents
//
// A document is a struct with json and yaml tags, and a function that makes it of the types of
// package forge, such as IntentOf. Fields that several documents have are one struct that these
// embed: Summary stands in every list, Settings in the documents that say how an intent was
// submitted. The JSON schemas in forgedir/schemas are made of these types, with the comments
// behind the fields as descriptions, so the comments are written for the reader of a file.
//
// # Adding a field to an intent
//
// A field that lists are to show goes into forge.Attributes and into the messages
// Intent and Attributes of proto/forge/v1/intent.proto, then into Attributes and
// Fields here. Everything else follows, or a test says what is missing:
//
//	make generate
//	go test ./document -rewrite
//	go test ./forgedir/schemas -rewrite
//	go test ./bus/requests -run AsyncAPI -rewrite
//
// Names are kept and fields are not removed: programs and files of people rely on them.
package document
