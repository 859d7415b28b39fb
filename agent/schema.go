package agent

import (
	"encoding/json"
	"fmt"
)

// SchemaWithout returns a schema of an object without some of its optional properties,
// for calls that cannot answer so. It panics if the schema is none, because schemas are
// part of the program.
func SchemaWithout(schema []byte, properties ...string) []byte {
	var s map[string]json.RawMessage
	var p map[string]json.RawMessage
	err := json.Unmarshal(schema, &s)
	if err == nil {
		err = json.Unmarshal(s["properties"], &p)
	}
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	for _, name := range properties {
		delete(p, name)
	}
	s["properties"], _ = json.Marshal(p)
	out, _ := json.Marshal(s)
	return out
}
