// backend/native
