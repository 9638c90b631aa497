"""stub"""
def looks_like_v1(root): return False
def read(document): raise AssertionError
