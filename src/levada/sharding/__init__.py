"""WHERE does this document live?"""
