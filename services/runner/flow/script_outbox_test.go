package flow_test

import "github.com/pfl-forge/pfl-forge"

// killed forgets what the runner was about to send, and takes from the outboxes what it sends again.
func (s *script) killed() {
	s.messages = nil
	s.enqueue(s.project.Pending().Outbox)
	for _, id := range s.ids {
		s.enqueue(s.intents[id].Pending().Outbox)
	}
}

func (s *script) enqueue(list []forge.Event) {
	for _, n := range list {
		n.Anchor = "a record" // as the runner sends it
		s.messages = append(s.messages, n)
	}
}

func (s *script) deliver() {
	for !s.hold && len(s.messages) > 0 {
		n := s.messages[0]
		s.messages = s.messages[1:]
		s.print("%s", describeMessage(n))
		s.send(n)
	}
}
