package signed

// MaxOutcomes is maxOutcomes.
const MaxOutcomes = maxOutcomes

// Remembered returns how many outcomes of signatures are remembered.
func (k *Keys) Remembered() int {
	k.verified.mu.Lock()
	defer k.verified.mu.Unlock()
	return len(k.verified.list)
}
