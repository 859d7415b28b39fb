package forge

import "fmt"

// Needed says why what an intent left, such as commits of its attempts and its agents'
// conversations, may still be needed, to go after the intent's id; empty if the intent
// is over for good.
func (s *Summary) Needed() string {
	switch {
	case s.Status.Failed():
		return fmt.Sprintf("is %s and can be retried: cancel it first", s.Status)
	case !s.Status.Ended():
		return fmt.Sprintf("is %s: it has not ended", s.Status)
	case len(s.Open) > 0:
		return fmt.Sprintf("is %s, but its %s has not ended yet: try again in a moment", s.Status, s.Open[0].Step)
	}
	return ""
}
