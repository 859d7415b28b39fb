package git

import (
	"context"
	"slices"
	"strings"
)

// Squash returns one commit that makes the change of base..head on base. A single commit stays what it is;
// of several the last one's author and date are kept, and the messages follow each other. The same commits give the
// same result. The caller Keeps it.
//
// Errors: *WorkError (Rewritten when base is no ancestor of head, Merged, Oversized).
func (s *Store) Squash(ctx context.Context, base, head OID) (OID, error) {
	r := s.readObjects(ctx)
	defer r.close()
	chain, err := r.chain(base, head)
	if err != nil {
		return "", err
	}
	if len(chain) < 2 {
		return head, nil
	}
	last := chain[len(chain)-1]
	id := s.identity.orDefault()
	last.parents = []OID{base}
	last.committer = id.Name + " <" + id.Email + "> " + when(last.committer)
	last.message = joinMessages(chain)
	return writeCommit(s.objects(), last, true)
}

// joinMessages puts the messages of commits one after the other, each once. What is in another encoding than the last
// one's is left out.
func joinMessages(chain []commitData) string {
	encoding := chain[len(chain)-1].encoding
	var messages []string
	for _, c := range chain {
		m := strings.TrimSpace(c.message)
		if c.encoding == encoding && m != "" && !slices.Contains(messages, m) {
			messages = append(messages, m)
		}
	}
	return strings.Join(messages, "\n\n") + "\n"
}
