package archive

import "encoding/json"

// PlanName is the name of the plan's file.
const PlanName = planName

// Interrupted is a restore that was killed after its first n renames.
func Interrupted(raw []byte, n int) error {
	var p plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	p.Moves = p.Moves[:n]
	return p.runPlan()
}

// Plan is what Commit stores first, and how many renames it has.
func (s *Staged) Plan() ([]byte, int, error) {
	moves, err := s.listMoves()
	if err != nil {
		return nil, 0, err
	}
	raw, err := json.Marshal(plan{Moves: moves})
	return raw, len(moves), err
}
