package room_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/asked"
	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/room"
)

// TestRoom: everything that is shown of a request and its plan counts.
func TestRoom(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, d := range map[string]document.Detail{
		"the request":   {Body: long},
		"a plan":        {Work: document.Work{PlanTasks: []document.Task{{Plan: long}}}},
		"a step":        {Work: document.Work{PlanTasks: []document.Task{{Steps: []string{long}}}}},
		"a requirement": {Work: document.Work{PlanTasks: []document.Task{{Requirements: []string{long}}}}},
		"a file":        {Work: document.Work{PlanTasks: []document.Task{{Files: []string{long}}}}},
		"a written one": {Work: document.Work{PlanTasks: []document.Task{{Write: &document.Write{Path: "a", Content: long}}}}},
		"a recipe":      {Work: document.Work{Asked: []asked.Part{{Name: "recipe", Texts: []string{long}}}}},
		"a part":        {Work: document.Work{Parts: []document.Part{{Body: long}}}},
	} {
		if n := room.Of(&d, nil); n < 1000 || n > 1100 {
			t.Errorf("%s takes %d bytes", name, n)
		}
	}
	if n := room.Of(&document.Detail{}, []concealed.Finding{{Line: 3, Kind: "HTML", Text: long}}); n < 1000 || n > 1100 {
		t.Errorf("a hidden part takes %d bytes", n)
	}
}
