"""How fast is a log of queries answered, with the documents placed one way or another on real servers?"""
