package qdranttest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// collection has one unnamed vector per point.
type collection struct {
	params  *qdrant.VectorParams
	points  map[string]*stored // by UUID
	indexed map[string]bool    // the payload fields with an index of keywords
}

// stored is a point. The vector has length 1, as in Qdrant for cosine.
type stored struct {
	vector  []float32
	payload map[string]*qdrant.Value
}

// Foreign creates a collection as another program may have created it.
func (s *Server) Foreign(name string, params *qdrant.VectorParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collections[name] = &collection{params: params, points: map[string]*stored{}}
}

// Drop removes a collection without the client.
func (s *Server) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.collections, name)
}

// Payload returns the payload of a point as strings; nil = there is no such point.
func (s *Server) Payload(name, id string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[name]
	if c == nil || c.points[id] == nil {
		return nil
	}
	texts := map[string]string{}
	for field, value := range c.points[id].payload {
		texts[field] = value.GetStringValue()
	}
	return texts
}

// Put stores a point without the client.
func (s *Server) Put(name, id string, vector []float32, payload map[string]string) {
	values := map[string]*qdrant.Value{}
	for field, text := range payload {
		values[field] = qdrant.NewValueString(text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collections[name].points[id] = &stored{normal(vector), values}
}

// find returns a collection. The lock must be held.
func (s *Server) find(name string) (*collection, error) {
	if c := s.collections[name]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "Not found: Collection `%s` doesn't exist!", name)
}

// collections implements the service qdrant.Collections.
type collections struct {
	qdrant.UnimplementedCollectionsServer
	*Server
}

// Create implements qdrant.CollectionsServer.
func (s collections) Create(
	_ context.Context, r *qdrant.CreateCollection,
) (*qdrant.CollectionOperationResponse, error) {
	params := r.GetVectorsConfig().GetParams()
	if r.GetCollectionName() == "" || params.GetSize() < 1 ||
		params.GetSize() > 65536 || params.GetDistance() != qdrant.Distance_Cosine {
		return nil, status.Error(codes.InvalidArgument, "Validation error in body")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.collections[r.GetCollectionName()] != nil {
		return nil, status.Errorf(
			codes.AlreadyExists, "Wrong input: Collection `%s` already exists!", r.GetCollectionName(),
		)
	}
	s.collections[r.GetCollectionName()] = &collection{params: params, points: map[string]*stored{}}
	return &qdrant.CollectionOperationResponse{Result: true}, nil
}

// Delete implements qdrant.CollectionsServer.
func (s collections) Delete(
	_ context.Context, r *qdrant.DeleteCollection,
) (*qdrant.CollectionOperationResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	existed := s.collections[r.GetCollectionName()] != nil
	delete(s.collections, r.GetCollectionName())
	return &qdrant.CollectionOperationResponse{Result: existed}, nil
}

// Get implements qdrant.CollectionsServer.
func (s collections) Get(
	_ context.Context, r *qdrant.GetCollectionInfoRequest,
) (*qdrant.GetCollectionInfoResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	return &qdrant.GetCollectionInfoResponse{Result: &qdrant.CollectionInfo{
		Status: qdrant.CollectionStatus_Green, PointsCount: new(uint64(len(c.points))),
		Config: &qdrant.CollectionConfig{
			Params: &qdrant.CollectionParams{VectorsConfig: qdrant.NewVectorsConfig(c.params)},
		},
	}}, nil
}

// List implements qdrant.CollectionsServer.
func (s collections) List(context.Context, *qdrant.ListCollectionsRequest) (*qdrant.ListCollectionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*qdrant.CollectionDescription
	for _, name := range slices.Sorted(maps.Keys(s.collections)) {
		all = append(all, &qdrant.CollectionDescription{Name: name})
	}
	return &qdrant.ListCollectionsResponse{Collections: all}, nil
}

// points implements the service qdrant.Points.
type points struct {
	qdrant.UnimplementedPointsServer
	*Server
}

func done() *qdrant.PointsOperationResponse {
	return &qdrant.PointsOperationResponse{Result: &qdrant.UpdateResult{Status: qdrant.UpdateStatus_Completed}}
}

// Upsert implements qdrant.PointsServer: all points or none.
func (s points) Upsert(_ context.Context, r *qdrant.UpsertPoints) (*qdrant.PointsOperationResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.GetCollectionName())
	if err != nil {
		return nil, err
	}
	if !r.GetWait() {
		return nil, status.Error(codes.Unimplemented, "points that nobody waits for")
	}
	added := map[string]*stored{}
	for _, p := range r.GetPoints() {
		id, err := uuid.Parse(p.GetId().GetUuid())
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "Unable to parse UUID: %s", p.GetId().GetUuid())
		}
		vector := p.GetVectors().GetVector().GetDense().GetData()
		if err := c.fits(vector); err != nil {
			return nil, err
		}
		added[id.String()] = &stored{normal(vector), p.GetPayload()}
	}
	maps.Copy(c.points, added)
	return done(), nil
}

func (c *collection) fits(vector []float32) error {
	if uint64(len(vector)) != c.params.GetSize() {
		return status.Errorf(
			codes.InvalidArgument, "Wrong input: Vector dimension error: expected dim: %d, got %d",
			c.params.GetSize(), len(vector),
		)
	}
	return nil
}

// Delete implements qdrant.PointsServer, by ids or a filter.
func (s points) Delete(_ context.Context, r *qdrant.DeletePoints) (*qdrant.PointsOperationResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.GetCollectionName())
	switch {
	case err != nil:
		return nil, err
	case !r.GetWait():
		return nil, status.Error(codes.Unimplemented, "a removal that nobody waits for")
	case r.GetPoints().GetFilter() != nil:
		accepts, err := s.accepting(c, r.GetPoints().GetFilter())
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(c.points, func(_ string, p *stored) bool { return accepts(p) })
		return done(), nil
	case r.GetPoints().GetPoints() == nil:
		return nil, status.Error(codes.InvalidArgument, "nothing is selected")
	}
	for _, id := range r.GetPoints().GetPoints().GetIds() {
		delete(c.points, id.GetUuid())
	}
	return done(), nil
}

// Scroll implements qdrant.PointsServer: ordered by id, the offset is the first of the page.
func (s points) Scroll(_ context.Context, r *qdrant.ScrollPoints) (*qdrant.ScrollResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.GetCollectionName())
	switch {
	case err != nil:
		return nil, err
	case r.GetOrderBy() != nil || r.GetWithVectors().GetEnable():
		return nil, status.Error(codes.Unimplemented, "orders and vectors of a scroll")
	}
	accepts, err := s.accepting(c, r.GetFilter())
	if err != nil {
		return nil, err
	}
	limit := 10
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	var page []*qdrant.RetrievedPoint
	for _, id := range slices.Sorted(maps.Keys(c.points)) {
		if id < r.GetOffset().GetUuid() || !accepts(c.points[id]) {
			continue
		}
		if len(page) == limit {
			return &qdrant.ScrollResponse{Result: page, NextPageOffset: qdrant.NewIDUUID(id)}, nil
		}
		page = append(page, &qdrant.RetrievedPoint{
			Id:      qdrant.NewIDUUID(id),
			Payload: choose(c.points[id].payload, r.GetWithPayload()),
		})
	}
	return &qdrant.ScrollResponse{Result: page}, nil
}

// Query implements qdrant.PointsServer: the nearest to a dense vector.
func (s points) Query(_ context.Context, r *qdrant.QueryPoints) (*qdrant.QueryResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(r.GetCollectionName())
	dense := r.GetQuery().GetNearest().GetDense()
	switch {
	case err != nil:
		return nil, err
	case r.GetPrefetch() != nil || r.Offset != nil || dense == nil:
		return nil, status.Error(codes.Unimplemented, "queries by other things than a dense vector")
	}
	if err := c.fits(dense.GetData()); err != nil {
		return nil, err
	}
	accepts, err := s.accepting(c, r.GetFilter())
	if err != nil {
		return nil, err
	}
	limit := uint64(10)
	if r.Limit != nil {
		limit = r.GetLimit()
	}
	query := normal(dense.GetData())
	found := make([]*qdrant.ScoredPoint, 0, len(c.points))
	for id, p := range c.points {
		if !accepts(p) {
			continue
		}
		var score float32
		for i := range query {
			score += query[i] * p.vector[i]
		}
		found = append(found, &qdrant.ScoredPoint{
			Id:      qdrant.NewIDUUID(id),
			Score:   score,
			Payload: choose(p.payload, r.GetWithPayload()),
		})
	}
	slices.SortFunc(found, func(a, b *qdrant.ScoredPoint) int { return cmp.Compare(b.GetScore(), a.GetScore()) })
	return &qdrant.QueryResponse{Result: found[:min(limit, uint64(len(found)))]}, nil
}

// choose returns the requested fields; none if no fields are requested.
func choose(payload map[string]*qdrant.Value, want *qdrant.WithPayloadSelector) map[string]*qdrant.Value {
	chosen := map[string]*qdrant.Value{}
	for field, value := range payload {
		if want.GetEnable() || slices.Contains(want.GetInclude().GetFields(), field) {
			chosen[field] = value
		}
	}
	return chosen
}

// normal returns a vector of length 1, computed in float32 as in Qdrant. One that is nearly zero is unchanged.
func normal(v []float32) []float32 {
	var sum float32
	for _, x := range v {
		sum += x * x
	}
	if sum < math.SmallestNonzeroFloat32 {
		return v
	}
	u := make([]float32, len(v))
	length := float32(math.Sqrt(float64(sum)))
	for i, x := range v {
		u[i] = x / length
	}
	return u
}
