package qdranttest

import (
	"context"
	"maps"
	"slices"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// accepting returns a filter as a function. It knows conditions that must hold, on fields whose value is one of some
// keywords. The lock must be held.
func (s *Server) accepting(c *collection, f *qdrant.Filter) (func(*stored) bool, error) {
	if len(f.GetShould()) > 0 || len(f.GetMustNot()) > 0 || f.GetMinShould() != nil {
		return nil, status.Error(codes.Unimplemented, "other conditions than must")
	}
	wants := map[string][]string{}
	for _, must := range f.GetMust() {
		field, keywords := must.GetField().GetKey(), must.GetField().GetMatch().GetKeywords()
		if keywords == nil {
			return nil, status.Error(codes.Unimplemented, "other conditions than one of several keywords")
		}
		if s.options.Strict && !c.indexed[field] {
			return nil, status.Errorf(codes.InvalidArgument,
				"Bad request: Index required but not found for %q of one of the following types: [keyword]", field)
		}
		wants[field] = keywords.GetStrings()
	}
	return func(p *stored) bool {
		for field, keywords := range wants {
			if value, ok := p.payload[field]; !ok || !slices.Contains(keywords, value.GetStringValue()) {
				return false
			}
		}
		return true
	}, nil
}

// CreateFieldIndex implements qdrant.PointsServer, for keywords.
func (s points) CreateFieldIndex(
	_ context.Context, r *qdrant.CreateFieldIndexCollection,
) (*qdrant.PointsOperationResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	if r.GetFieldType() != qdrant.FieldType_FieldTypeKeyword || !r.GetWait() {
		return nil, status.Error(codes.Unimplemented, "other indexes than of keywords, or that nobody waits for")
	}
	if c.indexed == nil {
		c.indexed = map[string]bool{}
	}
	c.indexed[r.GetFieldName()] = true
	return done(), nil
}

// Facet implements qdrant.PointsServer. Like Qdrant, it needs an index of the field.
func (s points) Facet(_ context.Context, r *qdrant.FacetCounts) (*qdrant.FacetResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	if !c.indexed[r.GetKey()] {
		return nil, status.Errorf(
			codes.InvalidArgument, "Bad request: No appropriate index for faceting: `%s`", r.GetKey(),
		)
	}
	counts := map[string]uint64{}
	for _, p := range c.points {
		counts[p.payload[r.GetKey()].GetStringValue()]++
	}
	limit := uint64(10)
	if r.Limit != nil {
		limit = r.GetLimit()
	}
	var hits []*qdrant.FacetHit
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		if uint64(len(hits)) < limit {
			hits = append(hits, &qdrant.FacetHit{
				Value: &qdrant.FacetValue{Variant: &qdrant.FacetValue_StringValue{StringValue: value}},
				Count: counts[value],
			})
		}
	}
	return &qdrant.FacetResponse{Hits: hits}, nil
}

// OverwritePayload implements qdrant.PointsServer, by ids.
func (s points) OverwritePayload(
	_ context.Context, r *qdrant.SetPayloadPoints,
) (*qdrant.PointsOperationResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	ids := r.GetPointsSelector().GetPoints().GetIds()
	if ids == nil || !r.GetWait() || r.Key != nil {
		return nil, status.Error(codes.Unimplemented, "payloads by filter or key, or that nobody waits for")
	}
	for _, id := range ids {
		p := c.points[id.GetUuid()]
		if p == nil {
			return nil, status.Errorf(codes.NotFound, "Not found: No point with id %s found", id.GetUuid())
		}
		p.payload = r.GetPayload()
	}
	return done(), nil
}
