package requests

import (
	"reflect"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/internal/submitted"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/document"
)

// protoSchema is the JSON Schema of a message in protobuf's JSON.
func protoSchema(typ reflect.Type) doc {
	properties := doc{}
	for f := range typ.Fields() {
		if f.Name == "Number" || typ == reflect.TypeFor[forge.Retry]() && f.Name == "Requesters" {
			continue // the project's, or the parent's
		}
		words := strings.Split(strings.ToLower(wordEnd.ReplaceAllString(f.Name, "${1}_$2")), "_")
		for i := range words[1:] {
			words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
		}
		schema := schemaOf(f.Type)
		if f.Type == reflect.TypeFor[*forge.Risk]() {
			schema = doc{"type": "string", "enum": []string{"RISK_LOW", "RISK_MED", "RISK_HIGH"}}
		}
		if f.Type == reflect.TypeFor[*forge.Knowledge]() {
			schema = doc{"type": "object", "properties": doc{
				"type": doc{"type": "string", "enum": []string{
					"KNOWLEDGE_TYPE_DISCOVERY", "KNOWLEDGE_TYPE_LESSON", "KNOWLEDGE_TYPE_PATTERN", "KNOWLEDGE_TYPE_CONSTRAINT", "KNOWLEDGE_TYPE_CODEBASE",
				}},
				"content": doc{"type": "string"}, "category": doc{"type": "string"}, "exampleFile": doc{"type": "string"},
				"confidence": doc{"type": "string", "enum": []string{"CONFIDENCE_HIGH", "CONFIDENCE_MEDIUM", "CONFIDENCE_LOW"}},
			}}
		}
		properties[strings.Join(words, "")] = schema
	}
	return doc{"type": "object", "properties": properties}
}

// published are the attributes of a published event.
var published = jsonNames(reflect.TypeFor[changes.CloudEvent[document.Change]]())

func envelope(kind, data doc, required ...string) doc {
	text := doc{"type": "string"}
	return doc{"type": "object", "required": required, "properties": doc{
		"specversion": doc{"type": "string", "const": changes.CloudEventsVersion}, "id": text, "source": text, "type": kind, "subject": text,
		"time": doc{"type": "string", "format": "date-time"}, "datacontenttype": doc{"type": "string", "const": wire.TypeJSON}, "data": data,
	}}
}

func listOf(item doc) doc { return doc{"type": "array", "items": item} }

// submissionSchema is what may be said of an intent.
func submissionSchema(further ...string) doc {
	text := func(most int) doc { return doc{"type": "string", "minLength": 1, "maxLength": most} }
	properties := doc{"project": doc{"type": "string"}}
	for _, f := range document.FieldsBy(document.Systems) {
		properties[f.Name] = fieldSchema(&f)
	}
	properties["source"] = doc{"type": "string", "const": string(forge.SourceSystem)}
	for _, name := range further {
		switch name {
		case "origin":
			properties[name] = doc{"type": "object", "additionalProperties": false, "properties": doc{
				"system": text(maxOrigin), "event_id": text(maxOrigin), "actor": text(maxOrigin),
			}}
		default:
			properties[name] = doc{"type": "string"}
		}
	}
	return doc{"type": "object", "additionalProperties": false, "required": []string{"title", "body"}, "properties": properties}
}

// fieldSchema is the JSON Schema of a field in a submission.
func fieldSchema(f *document.Field) doc {
	switch f.Of(&forge.Intent{}).(type) {
	case *int:
		return doc{"type": "integer"}
	case *float64:
		return doc{"type": "number", "minimum": 0}
	case *[]string, *[]forge.IntentID:
		list := listOf(textSchema(f))
		if f.Name == submitted.Criteria {
			list["items"] = doc{"oneOf": []doc{{"type": "string"}, {
				"type": "object", "additionalProperties": false, "required": []string{"check"}, "properties": doc{"check": doc{"type": "string"}},
			}}}
		}
		list["maxItems"] = forge.MaxListLength
		return list
	case *map[string]string:
		return doc{"type": "object", "additionalProperties": doc{"type": "string"}}
	}
	return textSchema(f)
}

// textSchema is the JSON Schema of a text of a field.
func textSchema(f *document.Field) doc {
	schema := doc{"type": "string"}
	if f.Max > 0 {
		schema["minLength"], schema["maxLength"] = 1, f.Max
	}
	if f.Words != nil {
		schema["enum"] = f.Words
	}
	return schema
}

// enums are the closed sets of values.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[forge.Source]():     {"human", "reflection", "system"},
	reflect.TypeFor[forge.Risk]():       {"low", "med", "high"},
	reflect.TypeFor[forge.Status]():     document.Statuses,
	reflect.TypeFor[forge.Waiting]():    document.Waits,
	reflect.TypeFor[forge.TaskStatus](): {string(forge.TaskPending), string(forge.TaskImplementing), string(forge.TaskDone), string(forge.TaskFailed)},
}

// schemaOf is the JSON Schema of a type that is written.
func schemaOf(typ reflect.Type) doc {
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return doc{"type": "string", "format": "date-time"}
	case enums[typ] != nil:
		return doc{"type": "string", "enum": enums[typ]}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return schemaOf(typ.Elem())
	case reflect.Slice:
		return listOf(schemaOf(typ.Elem()))
	case reflect.Bool:
		return doc{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return doc{"type": "integer"}
	case reflect.Float64:
		return doc{"type": "number"}
	case reflect.Struct:
		properties, required := doc{}, []string{}
		fields(typ, func(name string, optional bool, f reflect.StructField) {
			properties[name] = schemaOf(f.Type)
			if !optional {
				required = append(required, name)
			}
		})
		return doc{"type": "object", "properties": properties, "required": required}
	default:
		return doc{"type": "string"}
	}
}

// fields calls do with every field as it is in JSON.
func fields(typ reflect.Type, do func(name string, optional bool, f reflect.StructField)) {
	for f := range typ.Fields() {
		if f.Anonymous {
			fields(f.Type, do)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" {
			do(name, options != "", f) // omitempty or omitzero
		}
	}
}

func jsonNames(typ reflect.Type) (names []string) {
	fields(typ, func(name string, _ bool, _ reflect.StructField) { names = append(names, name) })
	return names
}
