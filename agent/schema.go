package agent

import (
	"encoding/json"
	"errors"
	"fmt"
)

// SchemaWithout returns a schema of an object without some of its optional properties,
// for calls that must not use them. It panics on an invalid schema, because schemas are
// part of the program.
func SchemaWithout(schema []byte, properties ...string) []byte {
	var s map[string]any
	err := json.Unmarshal(schema, &s)
	known, _ := s["properties"].(map[string]any)
	for _, name := range properties {
		delete(known, name)
	}
	out, err2 := json.Marshal(s)
	if err := errors.Join(err, err2); err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	return out
}
